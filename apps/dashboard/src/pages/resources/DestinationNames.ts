/** The names by which people know the types of destinations. The build makes them of the API's document. */
declare const DESTINATION_NAMES: Readonly<Record<string, string>>

export const destinationNames: ReadonlyArray<readonly [type: string, name: string]> = Object.entries(DESTINATION_NAMES)

const byType = new Map(destinationNames)

/** The name of a type; the type itself if the gateway has one that this page does not know. */
export const destinationName = (type: string): string => byType.get(type) ?? type
