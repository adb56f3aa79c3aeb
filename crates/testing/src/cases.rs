//! Shared by case files and comparisons with other programs: comparison of values, the notation of the files, and running `pinch` in
//! separate directories against a scripted server.

pub mod compare;

pub mod notation;

pub mod shape;

pub mod program;
