"""The multi-document analysis pipeline: documents in, a report with verified quotations out."""
