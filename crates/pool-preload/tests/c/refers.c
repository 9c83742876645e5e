/* Refers to the other library's indirect function: its resolver runs when this one is relocated. */
int chosen(void);
int call_chosen(void) { return chosen(); }
