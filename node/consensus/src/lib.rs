//! Who makes the next block: the application and the engines that drive it
