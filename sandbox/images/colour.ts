/** Red, green, blue from 0 to 255. */
export type Colour = readonly [number, number, number];
