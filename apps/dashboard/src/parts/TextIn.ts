import type { Page } from "./List.tsx"

/** No index of the gateway has bodies: for a text, this many of the newest rows are read, page by page. */
export const mostRead = 1_000

/** Those of the newest rows whose content has a text, in capitals or not. They are one page. */
export const withText = async <Model extends { readonly data?: unknown }>(
  text: string,
  read: (cursor: string | null) => Promise<Page<Model>>
): Promise<Page<Model>> => {
  const wanted = text.toLowerCase()
  const models: Array<Model> = []
  let cursor: string | null = null
  let seen = 0
  do {
    const page: Page<Model> = await read(cursor)
    seen += page.models.length
    models.push(
      ...page.models.filter(({ data }) =>
        JSON.stringify(data ?? "")
          .toLowerCase()
          .includes(wanted)
      )
    )
    cursor = page.has_more ? page.next_cursor : null
  } while (cursor !== null && seen < mostRead)
  return { models, next_cursor: null, has_more: false }
}
