//! Octet
fn main(){}
