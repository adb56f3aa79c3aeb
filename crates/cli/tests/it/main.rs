//! The program as its users meet it: arguments and files in; output, messages and exit codes out.

mod help;

mod faults;
