import { createCatalogue } from '../shared/catalogue/catalogue.ts';
import { settingsToTurnOn } from '../shared/config/vendor-settings.ts';
import type { Offer } from '../shared/vendors/vendor-description.ts';
import { type VendorRow, vendorRows } from '../shared/vendors/vendors.ts';

/** User-facing names of a vendor's operations. */
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

/** The table of docs/vendors.md, from the vendors' descriptions. @throws Error for one without `documentation`. */
export function vendorTable(): string {
  const rows = vendorRows.filter(({ name }) => name !== 'sandbox').map(vendorLine);
  return ['| vendor | on by | what it does here | models | checked by |', '|---|---|---|---|---|', ...rows].join('\n');
}

function vendorLine(row: VendorRow): string {
  const { documentation } = row;
  if (documentation === undefined) throw new Error(`the vendor ${row.name} has no documentation`);
  const settings = settingsToTurnOn(row).map((name) => `\`${name}\``);
  const listed = createCatalogue({ vendors: { [row.name]: { row, isOpen: false } } }).list().length;
  const count = row.isOpen ? `${listed === 0 ? '' : `${listed}, and `}any as \`${row.name}/name\`` : String(listed);
  const does = documentation.does ?? (row.offers ?? []).map((offer) => offerNames[offer]).join(', ');
  const cells = [
    `\`${row.name}\``,
    documentation.turnedOnBy ?? settings.join(' and '),
    does,
    count,
    documentation.checkedBy,
  ];
  return `| ${cells.join(' | ')} |`;
}
