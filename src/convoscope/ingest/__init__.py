"""Files in, conversations out: detection, the read report, one module per format."""
