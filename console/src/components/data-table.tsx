import { Box, Skeleton, Stack, Table, Text, UnstyledButton } from '@mantine/core';
import type { ReactNode } from 'react';
import type { List } from '../api/lists.ts';
import classes from './data-table.module.css';
import { ErrorPanel, errorText } from './error-panel.tsx';
import { ShowMore } from './show-more.tsx';

export interface Column<Row> {
  /** Shown in the column header; on a phone before each value. */
  readonly title: string;
  readonly render: (row: Row) => ReactNode;
  /** Numbers are right-aligned. */
  readonly align?: 'left' | 'right';
  /** Heading of the row's card on a phone. */
  readonly isMain?: boolean;
  /** For sortable columns: the current order, and the action of clicking the header. */
  readonly sort?: { readonly direction: 'ascending' | 'descending' | 'none'; readonly toggle: () => void };
}

export interface DataTableProps<Row> {
  /** Describes the table for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Shown last, in bold: the totals of the rows. */
  readonly total?: Row | undefined;
  readonly rowKey: (row: Row) => string;
  /** Action of a click anywhere on a row; some cell must contain a link or button with the same action, for the keyboard. */
  readonly onRowClick?: ((row: Row) => void) | undefined;
}

/** Rows under column headers; on a phone each row is a card. */
export function DataTable<Row>({ label, columns, rows, total, rowKey, onRowClick }: DataTableProps<Row>) {
  return (
    // Focusable: only so can a wide table be scrolled by keyboard.
    <Box className={classes.scroller} tabIndex={0} role="region" aria-label={label}>
      {/* Explicit roles: a table displayed as blocks is no longer a table to a screen reader. */}
      <Table className={classes.table} role="table" aria-label={label} highlightOnHover={onRowClick !== undefined}>
        <Table.Thead role="rowgroup">
          <Table.Tr role="row">
            {columns.map((column) => (
              <Table.Th
                key={column.title}
                role="columnheader"
                data-align={column.align}
                aria-sort={column.sort?.direction}
              >
                {column.sort === undefined ? column.title : <SortHead column={column} {...column.sort} />}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody role="rowgroup">
          {(total === undefined ? rows : [...rows, total]).map((row) => (
            <Table.Tr
              key={rowKey(row)}
              role="row"
              className={classes.row}
              data-total={row === total ? true : undefined}
              data-clickable={onRowClick === undefined ? undefined : true}
              onClick={onRowClick === undefined ? undefined : () => onRowClick(row)}
            >
              {columns.map((column) => (
                <Table.Td
                  key={column.title}
                  role="cell"
                  data-align={column.align}
                  data-main={column.isMain === true ? true : undefined}
                >
                  <span className={classes.label} aria-hidden>
                    {column.title}
                  </span>
                  <div className={classes.value}>{column.render(row)}</div>
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Box>
  );
}

const sortSigns = { ascending: ' ↑', descending: ' ↓', none: '' } as const;

function SortHead<Row>({ column, direction, toggle }: { column: Column<Row> } & NonNullable<Column<Row>['sort']>) {
  return (
    <UnstyledButton fz="sm" fw={600} onClick={toggle}>
      {column.title}
      <span aria-hidden>{sortSigns[direction]}</span>
    </UnstyledButton>
  );
}

/** Placeholder of a loading table, as high as a few rows. */
export function TableSkeleton({ rows = 5 }: { rows?: number }) {
  return (
    <Stack gap="xs" aria-busy aria-label="Loading" role="status">
      {Array.from({ length: rows }, (_, index) => index).map((row) => (
        <Skeleton key={row} height={36} radius="sm" />
      ))}
    </Stack>
  );
}

/** A paginated list: its table, loading state, error, empty state and button for more. */
export function ListTable<Row>({
  list,
  empty,
  ...table
}: Omit<DataTableProps<Row>, 'rows'> & { list: List<Row>; empty: ReactNode }) {
  if (list.error !== null) return <ErrorPanel error={list.error} onRetry={list.retry} />;
  if (list.isLoading) return <TableSkeleton />;
  return (
    <Stack gap="sm">
      {list.refreshError !== null && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert">
          This is as it was before: {errorText(list.refreshError)}
        </Text>
      )}
      {list.rows.length === 0 ? empty : <DataTable rows={list.rows} {...table} />}
      {list.hasMore && <ShowMore isLoading={list.isLoadingMore} onClick={list.loadMore} />}
    </Stack>
  );
}
