"""Two stages compared, and the recommendation that follows."""
