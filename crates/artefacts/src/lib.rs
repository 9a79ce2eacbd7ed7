//! Plans -> files ([`mod@write`]), and files -> trees with byte spans ([`tree`]). Pure: nothing here touches a disk.

pub mod tree;
pub mod write;
