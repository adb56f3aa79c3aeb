//! Cross-layer suites live in it/.
