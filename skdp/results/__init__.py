"""What people are shown of a release: summary, report, card, expected score, intervals."""
