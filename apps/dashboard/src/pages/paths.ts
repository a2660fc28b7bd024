/** Where a record is shown, by the beginning of its id; null: the dashboard has no page for it. */
export const pathOf = (id: string): string | null => {
  const [prefix] = id.split("_", 1)
  const page = {
    req: "requests",
    evt: "events",
    src: "sources",
    des: "destinations",
    web: "connections",
    trs: "transformations",
    wfl: "workflows"
  }[prefix ?? ""]
  return page === undefined || !/^[a-z]+_\w{1,80}$/.test(id) ? null : `/${page}/${id}`
}
