import type { Client } from "@tidegate/client/source"

const pages: Readonly<Record<string, string>> = {
  req: "requests",
  evt: "events",
  att: "attempts",
  src: "sources",
  des: "destinations",
  web: "connections",
  trs: "transformations",
  bch: "bulk-operations",
  wfl: "workflows",
  flt: "filters",
  fix: "fixtures",
  pac: "accounts"
}

const isId = (text: string): boolean => /^[a-z]+_\w{1,80}$/.test(text)

/** Records that have no page of their own address: how the page that shows one is found. */
const finders: Readonly<Record<string, (client: Client, id: string) => Promise<string>>> = {
  wfr: async (client, id) => {
    const { workflow_id } = await client.get("/workflow_runs/{id}", { params: { path: { id } } })
    return `/workflows/${workflow_id}/runs/${id}`
  }
}

/** Whether a text is an id of a record that the dashboard shows. */
export const isKnownId = (text: string): boolean => {
  const [prefix = ""] = text.split("_", 1)
  return isId(text) && (Object.hasOwn(pages, prefix) || Object.hasOwn(finders, prefix))
}

/** Where a record is shown, by the beginning of its id; null: the dashboard has no page for it. */
export const placeOf = async (client: Client, id: string): Promise<string | null> => {
  if (!isKnownId(id)) return null
  const [prefix = ""] = id.split("_", 1)
  const find = finders[prefix]
  if (find === undefined) return `/${pages[prefix]}/${id}`
  try {
    return await find(client, id)
  } catch {
    return null
  }
}
