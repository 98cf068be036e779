"""Terminal output: lines, tables, approval cards, chat, formats."""
