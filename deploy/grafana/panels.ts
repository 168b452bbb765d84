/** A query of a panel; `$__rate_interval` is Grafana's, at least four scrapes long. */
export interface PanelQuery {
  readonly expr: string;
  /** Name of each line, with labels in braces: `{{vendor}}`. */
  readonly legend: string;
}

/** A panel of a dashboard. */
export interface Panel {
  readonly title: string;
  readonly description?: string;
  /** Grafana's name of the values' unit; `short` by default. */
  readonly unit?: 's' | 'bytes' | 'percentunit' | 'reqps' | 'ops' | 'currencyUSD' | 'short';
  /** Lines over time by default. */
  readonly type?: 'timeseries' | 'stat';
  /** Whether lines are stacked. */
  readonly isStacked?: boolean;
  /** Value from which a `stat` is red. */
  readonly redFrom?: number;
  readonly queries: readonly PanelQuery[];
}

/** A dashboard: rows of panels, each row with a title. */
export interface Dashboard {
  /** Stable, so that links and a second import find it. */
  readonly uid: string;
  readonly title: string;
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[];
}

const columns = 24;
const panelHeight = 8;
const datasource = { type: 'prometheus', uid: '$' + '{datasource}' };

/** A dashboard as Grafana imports it (schema version 39: Grafana 11). */
export function dashboardJson({ uid, title, rows }: Dashboard): string {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    panels.push({ id: panels.length + 1, type: 'row', title: row.title, gridPos: { x: 0, y, w: columns, h: 1 } });
    y += 1;
    const perLine = Math.min(3, row.panels.length);
    const width = columns / perLine;
    row.panels.forEach((panel, index) => {
      const gridPos = { x: (index % perLine) * width, y: y + Math.floor(index / perLine) * panelHeight };
      panels.push(panelJson(panel, panels.length + 1, { ...gridPos, w: width, h: panelHeight }));
    });
    y += Math.ceil(row.panels.length / perLine) * panelHeight;
  }
  const variable = { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source', hide: 0 };
  return `${JSON.stringify(
    {
      ...{ uid, title, tags: ['sluice'], schemaVersion: 39, version: 1, editable: true, graphTooltip: 1 },
      ...{ timezone: 'browser', refresh: '30s', time: { from: 'now-6h', to: 'now' }, annotations: { list: [] } },
      templating: { list: [variable] },
      panels,
    },
    undefined,
    2,
  )}\n`;
}

function panelJson(panel: Panel, id: number, gridPos: object): object {
  const { title, description = '', unit = 'short', type = 'timeseries', isStacked = false, redFrom, queries } = panel;
  const thresholds = {
    mode: 'absolute',
    steps: [{ color: 'green', value: null }, ...(redFrom === undefined ? [] : [{ color: 'red', value: redFrom }])],
  };
  const custom = isStacked ? { fillOpacity: 30, stacking: { mode: 'normal', group: 'A' } } : { fillOpacity: 5 };
  return {
    ...{ id, type, title, description, gridPos, datasource },
    fieldConfig: { defaults: { unit, thresholds, ...(type === 'timeseries' && { custom }) }, overrides: [] },
    options:
      type === 'stat'
        ? { reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false }, colorMode: 'value' }
        : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
    targets: queries.map(({ expr, legend }, index) => ({
      ...{ refId: String.fromCharCode(65 + index), expr, legendFormat: legend, datasource },
      ...(type === 'stat' && { instant: true, range: false }),
    })),
  };
}
