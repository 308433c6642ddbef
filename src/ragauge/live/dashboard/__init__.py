"""The pages of `ragauge serve`: what live traffic measures, fires and decides, in a browser."""
