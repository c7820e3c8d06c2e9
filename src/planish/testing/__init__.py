"""What a plug-in's author tests with: conformance suites to subclass, and synthetic inputs for them."""
