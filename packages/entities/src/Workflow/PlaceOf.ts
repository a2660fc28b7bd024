/** The place in the code where a defect occurred, for the log. The message is left out, because it may contain input. */
export const placeOf = (defect: unknown): string => {
  if (!(defect instanceof Error)) return typeof defect
  const { message, name, stack = "" } = defect
  const from = stack.indexOf(message)
  const places = (from < 0 ? stack : stack.slice(from + message.length)).split("\n")
  return [name, ...places.filter((line) => /^\s+at /.test(line))].join("\n")
}
