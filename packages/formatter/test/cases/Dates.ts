import { bad, type Case, type Cases, one } from "../Run.ts"

const of = (
  inputs: Case["inputs"],
  output: Case["output"],
  options: Case["options"] = {},
  warnings: Case["warnings"] = []
): Case => ({ inputs, output, options, warnings })

const assumed = "DATE_TIME_ASSUMED"
const iso = { to_format: "YYYY-MM-DDTHH:mm:ssZ" }
const day = { to_format: "YYYY-MM-DD" }

const added = (
  input: string,
  expression: string,
  result: string,
  warnings: ReadonlyArray<string> = [],
  options: object = day,
  more: object = {}
): Case => one(input, result, { expression, ...more }, { ...options }, warnings)

const compared = (
  start: unknown,
  end: unknown,
  parts: ReadonlyArray<number>,
  about: object = {},
  options: object = {},
  warnings: ReadonlyArray<string> = []
): Case => {
  const [days = 0, hours = 0, minutes = 0, seconds = 0, total_seconds = 0] = parts
  return of(
    { ...(start === undefined ? {} : { start_date: start }), ...(end === undefined ? {} : { end_date: end }) },
    { days, hours, minutes, seconds, total_seconds, dates_swapped: false, same_dates: false, ...about },
    { ...options },
    warnings
  )
}

const parts = (
  input: unknown,
  of: Case["output"],
  more: object = {},
  options: object = {},
  warnings: ReadonlyArray<string> = []
): Case => ({
  inputs: { input, ...more },
  options: { ...options },
  output: of,
  warnings
})

const noDate = {
  year: null,
  month: null,
  day: null,
  weekday: null,
  iso_week: null,
  hour: null,
  minute: null,
  second: null,
  unix: null,
  iso: "",
  timezone: "",
  offset: ""
}

const instant = {
  year: 2026,
  month: 1,
  day: 31,
  weekday: 6,
  iso_week: 5,
  hour: 17,
  minute: 5,
  second: 9,
  unix: 1_769_879_109,
  iso: "2026-01-31T17:05:09.000+00:00",
  timezone: "UTC",
  offset: "+00:00"
}

export const dates: Cases = {
  "date.format": [
    // Digits that are a day are no seconds of 1970; as a number they are.
    one("20260303", "2026-03-03", {}, day, [assumed]),
    one(20260303, "1970-08-23", {}, day),
    one("20261303", "1970-08-23", {}, day),
    one(
      "2431375200",
      "01-17-2047 16:00 -0600",
      { to_timezone: "US/Central" },
      { from_format: "X", to_format: "MM-DD-YYYY HH:mm Z" }
    ),
    one(
      "2026-03-29 02:30",
      "2026-03-29T03:30:00+0200",
      { from_timezone: "Europe/Berlin", to_timezone: "Europe/Berlin" },
      iso,
      ["DST_GAP_ADJUSTED"]
    ),
    one(
      "2026-10-25 02:30",
      "2026-10-25T02:30:00+0200",
      { from_timezone: "Europe/Berlin", to_timezone: "Europe/Berlin" },
      iso,
      ["DST_OVERLAP_EARLIER"]
    ),
    one("2026-01-31T17:05:09Z", "31/01/2026", {}, { to_format: "DD/MM/YYYY" }),
    one(1769879109, "2026-01-31T17:05:09+0000", {}, iso),
    one(1769879109000, "2026-01-31T17:05:09+0000", {}, iso),
    one("2026-W05-6", "2026-01-31", {}, day, [assumed]),
    one("2026-031", "2026-01-31", {}, day, [assumed]),
    one("Sat, 31 Jan 2026 17:05:09 +0100", "2026-01-31T16:05:09+0000", {}, iso),
    one("01/02/2026", "2026-01-02", {}, day, ["DATE_AMBIGUOUS", assumed]),
    one("31/01/2026", "2026-01-31", {}, day, [assumed]),
    one("1/31/26 5:05 pm", "2026-01-31T17:05:00+0000", {}, iso),
    one("I ordered it on January 17, 2047 ok?", "2047-01-17", {}, day, ["DATE_FUZZY", assumed]),
    one("tomorrow at 5pm", "2026-01-16T17:00:00+0000", {}, iso, ["DATE_FUZZY"]),
    one("17:30", "2026-01-15T17:30:00+0000", {}, iso, ["DATE_FUZZY"]),
    one("2026-01-31T17:05:09+02:00", "Sat Jan 31 15:05:09 +0000 2026", {}, { to_format: "ddd MMM DD HH:mm:ss Z YYYY" }),
    one(
      "2026-01-31T17:05:09.123456Z",
      "17:05:09.123 6 Saturday 31st 031 Q1 2026-W05-6 x 05 PM pm",
      {},
      {
        to_format: "HH:mm:ss.SSS d dddd Do DDDD [Q]Q W [x] hh A a"
      }
    ),
    one("31. Januar 2026", "2026-01-31", {}, { from_format: "D. MMMM YYYY", to_format: "YYYY-MM-DD", locale: "de" }, [
      assumed
    ]),
    one("2026-01-31", "31. Januar", {}, { to_format: "D. MMMM", locale: "de" }, [assumed]),
    one("", "", {}, day, ["INPUT_EMPTY"]),
    one(["2026-01-01T00:00Z", null], ["2026-01-01", ""], {}, day, ["INPUT_EMPTY"]),
    bad("32.13.2026", "DATE_UNPARSEABLE", {}, day),
    bad("garbage", "DATE_UNPARSEABLE", {}, day),
    bad("2026-02-30", "DATE_UNPARSEABLE", {}, day),
    bad("2026-01-31", "DATE_UNPARSEABLE", {}, { ...day, from_format: "DD/MM/YYYY" }),
    bad("2026-01-31", "CONFIG_INVALID"),
    bad("2026-01-31", "DATE_FORMAT_INVALID", {}, { to_format: "YYYY foo" }),
    bad("2026-01-31", "TIMEZONE_UNKNOWN", { to_timezone: "Mars/Base" }, day),
    bad("9".repeat(16), "DATE_OUT_OF_RANGE", {}, day),
    bad("9".repeat(20), "DATE_OUT_OF_RANGE", {}, day),
    bad("9".repeat(400), "DATE_OUT_OF_RANGE", {}, day),
    bad("x".repeat(513), "LIMIT_EXCEEDED", {}, day),
    bad({ a: 1 }, "INPUT_INVALID", {}, day)
  ],
  "date.add_subtract": [
    added("2016-01-01", "+1 month -1 day", "2016-01-31", [assumed]),
    added("2016-02-01", "+1 month -1 day", "2016-02-29", [assumed]),
    added("2026-01-31T12:00Z", "+1 month", "2026-02-28"),
    added("2026-01-31T12:00Z", "", "2026-01-31"),
    added("2026-01-01T00:00Z", "+1 year -2 days 3 hours", "2026-12-29T21:00:00+0000", [], iso),
    added("2026-01-01T00:00Z", "1 quarter 1 week", "2026-04-08"),
    added("2026-01-16T00:00Z", "+1 business_day", "2026-01-19"),
    added("2026-01-17T00:00Z", "+5 business_days", "2026-01-23"),
    added("2026-01-18T00:00Z", "-1 business_day", "2026-01-16"),
    added("2026-03-28 02:30", "+1 day", "2026-03-29T03:30:00+0200", ["DST_GAP_ADJUSTED"], iso, {
      from_timezone: "Europe/Berlin",
      to_timezone: "Europe/Berlin"
    }),
    added("2026-03-28 12:00", "+24 hours", "2026-03-29T13:00:00+0200", [], iso, {
      from_timezone: "Europe/Berlin",
      to_timezone: "Europe/Berlin"
    }),
    added("2026-01-01T00:00Z", "90s", "2026-01-01T00:01:30+0000", [], iso),
    added("2026-01-01T00:00Z", "+1y2mo3d4h5m6s", "2027-03-04T04:05:06+0000", [], iso),
    bad("2026-01-01T00:00Z", "DATE_EXPRESSION_INVALID", { expression: "+1 fortnight" }, day),
    bad("2026-01-01T00:00Z", "DATE_EXPRESSION_INVALID", { expression: "+1 day ".repeat(21) }, day),
    bad("2026-01-01T00:00Z", "DATE_OUT_OF_RANGE", { expression: "+9999 years" }, day),
    bad("2026-01-01T00:00Z", "DATE_OUT_OF_RANGE", { expression: "+999999999 business_days" }, day),
    bad("2026-01-01T00:00Z", "INPUT_REQUIRED", {}, day)
  ],
  "date.compare": [
    compared("2026-01-01T00:00Z", "2026-01-02T03:04:05Z", [1, 3, 4, 5, 97_445]),
    compared("2026-01-02T03:04:05Z", "2026-01-01T00:00Z", [1, 3, 4, 5, 97_445], { dates_swapped: true }),
    compared("2026-01-01T00:00Z", "2026-01-01T10:00Z", [0, 10, 0, 0, 36_000], { same_dates: true }),
    compared("2026-01-01T00:00Z", "2026-01-02T03:04:05Z", [1, 0, 0, 0, 97_445], {}, { unit: "days" }),
    compared("2026-01-01T00:00Z", "2026-01-02T03:04:05Z", [0, 27, 0, 0, 97_445], {}, { unit: "hours" }),
    compared("2026-01-01T00:00Z", "2026-01-02T03:04:05Z", [0, 0, 1624, 0, 97_445], {}, { unit: "minutes" }),
    compared("2026-01-01T00:00Z", "2026-01-02T03:04:05Z", [0, 0, 0, 97_445, 97_445], {}, { unit: "seconds" }),
    compared(undefined, "2026-01-15T13:30Z", [0, 1, 0, 0, 3600], { same_dates: true }),
    compared("2026-01-15T12:30:00Z", "", [0, 0, 0, 0, 0], { same_dates: true }),
    compared("2026-01-01", "2026-01-02", [1, 0, 0, 0, 86_400], {}, {}, [assumed, assumed]),
    compared(
      "01.02.2026",
      "02.02.2026",
      [1, 0, 0, 0, 86_400],
      {},
      { start_format: "DD.MM.YYYY", end_format: "DD.MM.YYYY" },
      [assumed, assumed]
    ),
    of({ start_date: "garbage" }, "FORMATTER_DATE_UNPARSEABLE"),
    of({ from_timezone: "Nowhere" }, "FORMATTER_TIMEZONE_UNKNOWN"),
    of(
      { start_date: ["2026-01-01T00:00Z", "2026-01-01T00:00Z"], end_date: "2026-01-02T00:00Z" },
      {
        days: [1, 1],
        hours: [0, 0],
        minutes: [0, 0],
        seconds: [0, 0],
        total_seconds: [86_400, 86_400],
        dates_swapped: [false, false],
        same_dates: [false, false]
      }
    )
  ],
  "date.parts": [
    parts("2026-01-31T17:05:09Z", instant),
    parts(1_769_879_109, instant),
    parts("1769879109", instant),
    parts("2026-01-31T18:05:09+01:00", instant),
    parts(
      "2026-01-31T17:05:09Z",
      { ...instant, hour: 18, iso: "2026-01-31T18:05:09.000+01:00", timezone: "Europe/Berlin", offset: "+01:00" },
      { timezone: "Europe/Berlin" }
    ),
    parts(
      "2026-01-31T17:05:09Z",
      { ...instant, hour: 19, iso: "2026-01-31T19:05:09.000+02:00", timezone: "+02:00", offset: "+02:00" },
      { timezone: "+02:00" }
    ),
    parts("31 01 2026 17:05:09", instant, {}, { from_format: "DD MM YYYY HH:mm:ss" }),
    parts("20260131T170509Z", instant),
    parts("Sat, 31 Jan 2026 17:05:09 GMT", instant),
    parts("garbage", "FORMATTER_DATE_UNPARSEABLE"),
    parts("2026-01-31", "FORMATTER_TIMEZONE_UNKNOWN", { timezone: "x" }),
    parts(null, "FORMATTER_INPUT_REQUIRED"),
    parts("", noDate, {}, {}, ["INPUT_EMPTY"]),
    parts([null], Object.fromEntries(Object.entries(noDate).map(([name, value]) => [name, [value]])), {}, {}, [
      "INPUT_EMPTY"
    ]),
    parts("2026-W60-1", "FORMATTER_DATE_UNPARSEABLE", {}, { from_format: "W" }),
    parts("2026-01-31", "FORMATTER_DATE_FORMAT_INVALID", {}, { from_format: "Q" })
  ]
}
