/** A string `format`: generates and recognizes it. */
export interface StringFormat {
  /** @param filler letters and digits to include if the format has room; `number` varies the rest. */
  make(filler: string, number: number): string;
  check: RegExp;
}

const day = (number: number) => String((number % 28) + 1).padStart(2, '0');
const second = (number: number) => String(number % 60).padStart(2, '0');
const minute = (number: number) => String(Math.floor(number / 60) % 60).padStart(2, '0');
const hex = (number: number, length: number) => number.toString(16).padStart(length, '0').slice(-length);

const date = '\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])';
const time = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:[zZ]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)';
const label = '[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?';
const byte = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';

const email: StringFormat = {
  make: (filler, number) => `user${number || ''}${filler}@example.com`,
  check: new RegExp(`^[^\\s@]+@${label}(?:\\.${label})+$`),
};
const hostname: StringFormat = {
  make: (filler, number) => `host${number || ''}${filler.slice(0, 50)}.example.com`,
  check: new RegExp(`^(?=.{1,253}$)${label}(?:\\.${label})*$`),
};
const uri: StringFormat = {
  make: (filler, number) => `https://example.com/${number || ''}${filler}`,
  check: /^[a-zA-Z][a-zA-Z0-9+.-]*:[^\s<>"{}|\\^`]+$/,
};
const base64: StringFormat = {
  make: (filler, number) => Buffer.from(`bytes${number || ''}${filler}`).toString('base64'),
  check: /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/,
};

/** The formats of JSON Schema, and `byte` of OpenAPI; unknown formats do not constrain a string. */
export const stringFormats: ReadonlyMap<unknown, StringFormat> = new Map<unknown, StringFormat>([
  ['date', { make: (_, number) => `2025-01-${day(number)}`, check: new RegExp(`^${date}$`) }],
  ['time', { make: (_, number) => `12:${minute(number)}:${second(number)}Z`, check: new RegExp(`^${time}$`) }],
  [
    'date-time',
    {
      make: (_, number) => `2025-01-01T12:${minute(number)}:${second(number)}Z`,
      check: new RegExp(`^${date}[tT ]${time}$`),
    },
  ],
  [
    'duration',
    {
      make: (_, number) => `P${number + 1}D`,
      check: /^P(?!$)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)$/,
    },
  ],
  ['email', email],
  ['idn-email', email],
  ['hostname', hostname],
  ['idn-hostname', hostname],
  ['ipv4', { make: (_, number) => `192.0.2.${(number % 254) + 1}`, check: new RegExp(`^(?:${byte}\\.){3}${byte}$`) }],
  ['ipv6', { make: (_, number) => `2001:db8::${hex(number + 1, 1)}`, check: /^[0-9a-fA-F:.]*:[0-9a-fA-F:.]*$/ }],
  ['uri', uri],
  ['iri', uri],
  ['url', uri],
  ['uri-reference', { ...uri, check: /^[^\s<>"{}|\\^`]*$/ }],
  ['iri-reference', { ...uri, check: /^[^\s<>"{}|\\^`]*$/ }],
  [
    'uuid',
    {
      make: (_, number) => `00000000-0000-4000-8000-${hex(number + 1, 12)}`,
      check: /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/,
    },
  ],
  ['json-pointer', { make: (filler, number) => `/items/${number}${filler}`, check: /^(?:\/(?:[^~/]|~[01])*)*$/ }],
  ['byte', base64],
]);
