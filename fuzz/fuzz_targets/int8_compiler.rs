#![no_main]

octet_fuzz_programs::program!("int8_compiler");
