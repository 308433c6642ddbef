"""Parts that the formats of CI services share."""
