//! Suites across the layers: what only the parts together can show.

mod edges;

mod prefix;
