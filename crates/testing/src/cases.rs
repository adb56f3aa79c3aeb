//! What case files and comparisons with other programs share: how two values are compared, the notation of the files, and `pinch` run in
//! directories of its own against a scripted server.

pub mod compare;

pub mod notation;

pub mod shape;

pub mod program;
