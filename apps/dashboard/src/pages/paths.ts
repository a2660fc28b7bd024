import type { Client } from "@tidegate/client/source"

const pages: Readonly<Record<string, string>> = {
  req: "requests",
  evt: "events",
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

/** Whether a text is an id of a record that the dashboard shows. */
export const isKnownId = (text: string): boolean => {
  const [prefix = ""] = text.split("_", 1)
  return isId(text) && (prefix === "att" || Object.hasOwn(pages, prefix))
}

/** Where a record is shown, by the beginning of its id; null: the dashboard has no page for it. An attempt is shown by its event. */
export const placeOf = async (client: Client, id: string): Promise<string | null> => {
  if (!isKnownId(id)) return null
  if (!id.startsWith("att_")) return `/${pages[id.split("_", 1)[0]!]}/${id}`
  try {
    const { event_id } = await client.get("/attempts/{id}", { params: { path: { id } } })
    return `/events/${event_id}`
  } catch {
    return null
  }
}
