//! How results are written: nothing that a file had is lost unsaid, and no other file is touched.
