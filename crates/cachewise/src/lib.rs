//! Copy, zero and compare memory the way this machine's measured profile says
