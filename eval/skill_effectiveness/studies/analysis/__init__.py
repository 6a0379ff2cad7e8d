"""What follows from the tables of a study: pure functions, one file per method (studies.md section 6)."""
