"""LLVM IR as text: its syntax, functions split out of modules, their normal form, and their features."""
