"""Measuring service: clients submit candidates over HTTP or MCP, and the engine measures them."""
