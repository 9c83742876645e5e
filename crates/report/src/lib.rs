//! Records drawn as terminal tables, CSV and Markdown
