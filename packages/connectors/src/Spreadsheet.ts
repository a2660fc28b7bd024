import { isExactNumber, readNumber } from "@tidegate/json/ExactNumber"
import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { OneOf } from "@tidegate/model/AuthSettings"
import { apiSender, flat, json } from "./Api.ts"
import { connector } from "./Connector.ts"
import { shortened } from "./Cutting.ts"
import { judgeGoogle } from "./Google.ts"
import { type DeliveryTemplate, type Fill, filledJson, template, templateFault, Unrenderable } from "./Rendering.ts"
import { AnyJson, needed, setting, text } from "./Settings.ts"

/** Characters; the API refuses more in one cell. */
const longestCell = 50_000
/** Characters of all cells of a row: the API recommends calls of at most 2 MB. */
const longestRow = 500_000
const maxColumns = 200

const api = "https://sheets.googleapis.com"

const cells = `must be a list of 1 to ${maxColumns} values`
const manyColumns = `must be a list of at most ${maxColumns} paths or templates`

/** First words of a column that do not refer to the payload. */
const ofMetadata =
  /^(?:event_id|request_id|team_id|source_id|connection_id|destination_id|created_at|path|(?:headers|query|payload)(?:[.[].*)?)$/s

/** A column is a template, or the path of one value: `order.id`, `payload.order.id`, `event_id`. */
const templateOf = (column: string): string => {
  if (column.includes("{{")) return column
  const path = column.trim()
  return `{{${ofMetadata.test(path) ? path : `payload${path.startsWith("[") ? "" : "."}${path}`}}}`
}

/** Whether a column is a single placeholder, whose value keeps its type; any other column is text. */
const isOneValue = (column: string): boolean => /^\{\{[^{}]*\}\}$/.test(templateOf(column).trim())

const Column = text.check(
  Characters.upTo(1_024).abort(),
  Schema.makeFilter(
    (column: string) =>
      ((column.includes("{{") || !/[{}]/.test(column)) && templateFault(templateOf(column)) === null) ||
      "must be a path like order.id or event_id, or a template"
  )
)

const metadata = ["event_id", "request_id", "source_id", "connection_id", "created_at"]

/** Appends rows to a spreadsheet (Google Sheets, values:append). */
export const spreadsheet = connector({
  type: "SPREADSHEET",
  name: "Google Sheets",
  description: "Appends a row to a spreadsheet (Google Sheets).",
  settings: {
    spreadsheet_id: needed(
      text
        .check(
          Schema.isPattern(/^[A-Za-z0-9_-]{8,128}$/, {
            message: "must be the id in the spreadsheet's URL: 8 to 128 letters, digits, - and _"
          })
        )
        .annotate({
          description: "The id in the spreadsheet's URL, between /d/ and /edit",
          examples: ["1BxiMVs0XRA5nFMd"]
        }),
      "the id in the spreadsheet's URL"
    ),
    sheet_name: setting(
      text
        .check(
          Schema.isPattern(/^[^\p{Cc}\p{Cs}]{1,100}$/u, { message: "must be the name of a sheet: 1 to 100 characters" })
        )
        .annotate({ description: "The name on the sheet's tab" }),
      "Sheet1"
    ),
    value_input_option: setting(
      OneOf(["RAW", "USER_ENTERED"]).annotate({
        description:
          "RAW stores texts as they are; USER_ENTERED reads them as if they were typed, as numbers and dates, but never as formulas"
      }),
      "RAW"
    ),
    columns: setting(
      Schema.Array(Column)
        .annotate({
          message: manyColumns,
          description: "The cells of a row in their order: paths like order.id or event_id, or templates",
          examples: [["event_id", "order.id", "{{payload.first}} {{payload.last}}"]]
        })
        .check(Schema.isMaxLength(maxColumns, { message: manyColumns })),
      [],
      manyColumns
    ),
    include_metadata: setting(
      Schema.Boolean.annotate({
        description: `Without columns: whether ${metadata.join(", ")} stand before the payload`
      }),
      true,
      "must be true or false"
    )
  },
  pace: { perSecond: 1, because: "the API takes 60 writes a minute from an account" },
  none: {
    range: Schema.NullOr(Schema.String.check(Schema.isPattern(/^'.{1,200}'!A1$/su))).annotate({
      message: "is made of config.sheet_name"
    })
  },
  shown: ({ sheet_name }) => ({ range: rangeOf(sheet_name) }),
  auths: ["OAUTH_REFRESH_TOKEN", "OAUTH2_AUTHORIZATION_CODE", "SERVICE_ACCOUNT"],
  scope: "https://www.googleapis.com/auth/spreadsheets",
  origins: [api],
  credentials: "mask",
  perStep: {
    without: ["columns", "include_metadata"],
    name: "values",
    payload: needed(
      AnyJson.annotate({
        message: cells,
        description: "The cells of the row in their order; lists and objects stand in a cell as JSON"
      }).check(
        Schema.makeFilter(
          (values: unknown) => (Array.isArray(values) && values.length > 0 && values.length <= maxColumns) || cells,
          { toJsonSchema: () => ({ type: "array", minItems: 1, maxItems: maxColumns }) }
        )
      ),
      "the cells of the row",
      cells
    ),
    example: ["{{trigger.body.id}}", 12.5],
    settings: (values) => ({ columns: (values as ReadonlyArray<unknown>).map((_, at) => `payload[${at}]`) })
  },
  example: {
    name: "orders-sheet",
    type: "SPREADSHEET",
    config: {
      spreadsheet_id: "1BxiMVs0XRA5nFMd",
      columns: ["event_id", "order.id", "order.total"],
      auth_type: "OAUTH_REFRESH_TOKEN",
      auth: {
        client_id: "0000.apps.googleusercontent.com",
        client_secret: "secret-of-the-client",
        refresh_token: "1//token-of-the-account",
        token_url: "https://oauth2.googleapis.com/token"
      }
    }
  },
  open: ({ columns, include_metadata, sheet_name, spreadsheet_id, value_input_option }, { headers }, origins) => {
    const range = encodeURIComponent(rangeOf(sheet_name))
    const asked = `valueInputOption=${value_input_option}&insertDataOption=INSERT_ROWS`
    const url = `${origins(api)}/v4/spreadsheets/${spreadsheet_id}/values/${range}:append?${asked}`
    const cells = columnsOf(columns, include_metadata).map(cellOf)
    const isTyped = value_input_option === "USER_ENTERED"
    return apiSender({
      shownUrl: url,
      judge: (answer) => judgeGoogle(answer, isAppended),
      call: (fill) => ({
        url,
        headers: flat(headers),
        contentType: json,
        body: JSON.stringify({ majorDimension: "ROWS", values: [rowOf(fill, cells, isTyped)] })
      })
    })
  }
})

/** The range to append to: after the table that begins there. */
const rangeOf = (sheetName: string): string => `'${sheetName.replaceAll("'", "''")}'!A1`

const columnsOf = (columns: ReadonlyArray<string>, withMetadata: boolean): ReadonlyArray<string> =>
  columns.length > 0 ? columns : [...(withMetadata ? metadata : []), "payload"]

type Value = string | number | boolean
type Cell = (fill: Fill) => Value

const cellOf = (column: string): Cell => {
  const one: DeliveryTemplate = template(templateOf(column))
  return isOneValue(column) ? (fill) => valueOf(filledJson(fill, one, "columns")) : (fill) => fill(one)
}

/** Lists and objects are written as JSON text. */
const valueOf = (json: unknown): Value => {
  if (typeof json === "string" || typeof json === "number" || typeof json === "boolean") return json
  // A spreadsheet's numbers are doubles: a number with more digits has to be written as text.
  if (isExactNumber(json)) return String(json)
  return json === null ? "" : JSON.stringify(json)
}

const rowOf = (fill: Fill, cells: ReadonlyArray<Cell>, isTyped: boolean): ReadonlyArray<Value> => {
  let room = longestRow
  return cells.map((cell) => {
    const value = cell(fill)
    if (typeof value !== "string") return value
    const text = shortened(value.toWellFormed(), longestCell - 1)
    room -= text.length
    if (room < 0) throw new Unrenderable(`config.columns make more than ${longestRow} characters of this event`)
    return isTyped ? inert(text) : text
  })
}

/**
 * In `USER_ENTERED` mode a text may become a formula, which can read other cells and make calls. So a payload's text that looks like one
 * gets an apostrophe, which marks it as text. Signed numbers stay numbers; numbers with more digits than a cell can hold become text.
 */
const inert = (text: string): string =>
  (/^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/.test(text) && !/^\s*[+-]?[\d.,\s%]*$/.test(text)) || isBeyondCells(text)
    ? `'${text}`
    : text

const isBeyondCells = (text: string): boolean =>
  text.length > 15 && /^\s*[+-]?\d*\.?\d+(?:[eE][+-]?\d+)?\s*$/.test(text) && isExactNumber(readNumber(text.trim()))

/** Google answers 200 with the updated range. */
const isAppended = ({ updates }: Readonly<Record<string, unknown>>): boolean =>
  typeof updates === "object" && updates !== null && "updatedRows" in updates && Number(updates.updatedRows) >= 1
