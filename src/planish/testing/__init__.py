"""Conformance suites for plug-ins to subclass, and synthetic inputs for them."""
