"""The simulator core: the admission protocol of one mixture-of-experts serving replica."""
