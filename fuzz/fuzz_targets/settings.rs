#![no_main]

octet_fuzz_programs::program!("settings");
