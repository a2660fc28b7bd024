/** The members of the outputs of those operations of the formatter whose output is more than `result`. A test compares them with the operations. */
export const formatterOutputs = {
  "date.compare": ["days", "hours", "minutes", "seconds", "total_seconds", "dates_swapped", "same_dates"],
  "date.parts": [
    "year",
    "month",
    "day",
    "weekday",
    "iso_week",
    "hour",
    "minute",
    "second",
    "unix",
    "iso",
    "timezone",
    "offset"
  ],
  "number.phone": ["result", "valid", "country", "type"],
  "text.extract_pattern": ["matched", "start", "end", "groups", "named", "matches"],
  "text.split_chunks": ["items", "count"],
  "utility.append_line_items": ["items", "count"],
  "utility.import_csv": ["line_items", "header", "row_count", "dialect", "csv_text"],
  "utility.line_item_numbering": ["line_items", "count"],
  "utility.line_itemizer": ["count"],
  "utility.line_items_to_text": ["text", "item_1", "item_last", "count"],
  "utility.text_to_line_items": ["items", "count"]
} as const
