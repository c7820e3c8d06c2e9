"""Oracles and the conformance suite of back ends: interpreters of loop trees, random programs, schedules."""
