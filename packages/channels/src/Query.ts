/** A URL with query parameters. A parameter that is null is left out. */
export const withQuery = (url: string, parameters: Readonly<Record<string, string | null>>): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== null) query.set(name, value)
  return `${url}?${query.toString()}`
}
