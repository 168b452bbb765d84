import { models } from '../shared/catalogue/models.ts';
import { type Offer, type VendorRow, vendorRows } from '../shared/catalogue/vendors.ts';
import { settingsToTurnOn } from '../shared/config/vendor-settings.ts';
import { vendorNotes } from './vendor-notes.ts';

/** What users call what a vendor offers. */
const offerNames: Readonly<Record<Offer, string>> = {
  chat: 'chat',
  respond: 'responses',
  complete: 'legacy completions',
  embed: 'embeddings',
  image: 'images',
  video: 'videos',
  transcribe: 'transcription',
  speak: 'speech',
};

/** The table of docs/vendors.md, from the rows of the vendors and docs/vendor-notes.ts. @throws Error for a row without a note. */
export function vendorTable(): string {
  const rows = vendorRows.filter(({ name }) => name !== 'sandbox').map(vendorLine);
  return ['| vendor | on by | what it does here | models | checked by |', '|---|---|---|---|---|', ...rows].join('\n');
}

function vendorLine(row: VendorRow): string {
  const note = vendorNotes[row.name];
  if (note === undefined) throw new Error(`docs/vendor-notes.ts has no note of the vendor ${row.name}`);
  const settings = settingsToTurnOn(row).map((name) => `\`${name}\``);
  const listed = models.filter(({ routes }) => routes.some(({ vendor }) => vendor === row.name)).length;
  const count = row.isOpen ? `${listed === 0 ? '' : `${listed}, and `}any as \`${row.name}/name\`` : String(listed);
  const does = note.does ?? (row.offers ?? []).map((offer) => offerNames[offer]).join(', ');
  const cells = [`\`${row.name}\``, note.turnedOnBy ?? settings.join(' and '), does, count, note.checkedBy];
  return `| ${cells.join(' | ')} |`;
}
