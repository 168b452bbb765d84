/**
 * A JSON value as a Python literal.
 * @param indent indentation of the line it starts on
 */
export function pythonLiteral(value: unknown, indent = 0): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  // Every escape of JSON.stringify means the same in Python.
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') return String(value);
  const pad = ' '.repeat(indent + 4);
  const end = ' '.repeat(indent);
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[\n${value.map((item) => `${pad}${pythonLiteral(item, indent + 4)},\n`).join('')}${end}]`;
  }
  const members = Object.entries(value);
  if (members.length === 0) return '{}';
  const lines = members.map(([name, item]) => `${pad}${JSON.stringify(name)}: ${pythonLiteral(item, indent + 4)},\n`);
  return `{\n${lines.join('')}${end}}`;
}
