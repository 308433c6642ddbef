"""What tests share: folders with files, servers, corpora, stored runs, and readers of pages."""
