"""What holds for all inputs: small random data sets, drawn the same way on every machine."""
