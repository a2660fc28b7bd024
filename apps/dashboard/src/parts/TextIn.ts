import { isNested } from "../json.ts"
import { type Page, pageAt, type PageQuery } from "./Pages.ts"

/** The gateway has no index of bodies. To search for a text, this many of the newest rows are read, page by page. */
export const maxRead = 1_000

type Values = Readonly<Record<string, string | ReadonlyArray<string>>>

/** What the API shows of a request's content. */
export interface Content {
  readonly headers: Values
  readonly path: string
  readonly query: string
  readonly body: unknown
}

/** The texts in a JSON value, without the escapes of JSON. A stack of its own, because a stranger may nest deeply. */
function* textsIn(value: unknown): Generator<string> {
  const open: Array<unknown> = [value]
  while (open.length > 0) {
    const one = open.pop()
    if (typeof one === "string") yield one
    else if (isNested(one)) {
      for (const [name, member] of Object.entries(one)) {
        if (!Array.isArray(one)) yield name
        open.push(member)
      }
    }
  }
}

const isSign = (letter: string | undefined): boolean => letter !== undefined && "[]{},:".includes(letter)

/**
 * JSON without the spaces around its punctuation, whatever the sender's formatting. Each space is read once: a pattern of spaces and a sign would
 * read a long run of spaces again from each space.
 */
const compact = (text: string): string =>
  text.replaceAll(/\s+/g, (spaces, at: number) =>
    isSign(text[at - 1]) || isSign(text[at + spaces.length]) ? "" : spaces
  )

/** Whether a text is in a header, the path, the query or the body, whatever its case. The API's own member names do not count. */
export const hasText = ({ body, headers, path, query }: Content, text: string): boolean => {
  const wanted = text.toLowerCase()
  const isIn = (part: string): boolean => part.toLowerCase().includes(wanted)
  if (isIn(path) || isIn(query)) return true
  for (const [name, value] of Object.entries(headers)) {
    if ([value].flat().some((one) => isIn(`${name}: ${one}`))) return true
  }
  for (const part of textsIn(body)) if (isIn(part)) return true
  // Numbers, and what goes over several members.
  return (
    typeof body !== "string" &&
    compact(JSON.stringify(body ?? ""))
      .toLowerCase()
      .includes(compact(wanted))
  )
}

/** Where a search begins (default: at the newest row), and how many rows it reads. */
interface Part {
  readonly from?: string
  readonly most?: number
}

/** The rows whose content contains a text, among the newest ones or from a cursor. They are returned as one page, without their contents. */
export const withText = async <Model extends { readonly data?: Content | null; readonly ingested_at: string }>(
  text: string,
  read: (page: PageQuery) => Promise<Page<Model>>,
  { from, most = maxRead }: Part = {}
): Promise<Page<Model>> => {
  const models: Array<Model> = []
  let cursor: string | null = from ?? null
  let count = 0
  let since: string | null = null
  do {
    const page: Page<Model> = await read(pageAt(cursor))
    count += page.models.length
    since = page.models.at(-1)?.ingested_at ?? since
    for (const row of page.models) if (row.data != null && hasText(row.data, text)) models.push({ ...row, data: null })
    cursor = page.has_more ? page.next_cursor : null
  } while (cursor !== null && count < most)
  return { models, next_cursor: null, has_more: false, searched: { count, since, cursor } }
}
