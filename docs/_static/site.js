// A page opened from disk may not fetch others, which the extracts below search results need.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
