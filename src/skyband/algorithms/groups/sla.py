"""SLA: the Sorted List Algorithm."""

from skyband.algorithms.groups.assembled import Assembled


class Sla(Assembled):
    """The Sorted List Algorithm of Haghani et al., *Evaluating Top-k Queries over Incomplete Data Streams* (CIKM 2009,
    section 3.1; many occurrences: section 5).

    Holds every row of the window, one list a stream sorted by value, and a view of the k_max best objects. A row that
    comes or expires changes the score of one object, which moves within the view or across its bar; when the view has
    fewer than k objects left, it is filled anew by the Threshold Algorithm over the lists. Exact for every window,
    aggregate and stream.

    Deviations:

    - k_max is tuned: doubled when filling the view costs more than moving objects within it, halved when it costs
      next to nothing.
    - A list holds one entry for each object: with many occurrences their sum, where the paper inserts each occurrence
      and uses the largest.
    - New entries go through a small sorted buffer that is merged into the lists when it is full.
    - Absent streams may count for more than a value that is present (a sum with negative amounts): the threshold takes
      the larger of the two. With a Python function, of which no threshold is known here, the view is filled from all
      objects.
    """

    name = "sla"
    listed = True
