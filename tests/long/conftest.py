"""The long suites: each is collected only where its file is named, as `make test-long` does."""

collect_ignore_glob = ["test_*.py"]
