"""The HTML report: one self-contained page with a stepper, and the same page over a live model."""
