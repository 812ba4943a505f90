"""Make a plan: from the parameters of a release to what is settled before it."""
