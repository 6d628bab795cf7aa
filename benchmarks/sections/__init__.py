"""The sections of the results page, each made from one result file."""
